// Numbers in words.

function withPrefix(value: number, units: string[]): string {
  let i = 0;
  while (i + 1 < units.length && Math.abs(value) >= 1000 * 0.99995) { value /= 1000; ++i; }
  return `${Number(value.toPrecision(4))} ${units[i]}`;
}
export const size = (bytes: number) => withPrefix(bytes, ["B", "kB", "MB", "GB", "TB"]);
export const rate = (bps: number) => withPrefix(bps, ["b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"]);
export const time = (us: number) =>
    us < 0 ? `-${positiveTime(-us)}` : positiveTime(us);
const positiveTime = (us: number) => withPrefix(us * 1e6, ["ps", "ns", "us", "ms", "s"]);
export const percent = (part: number) => `${(part * 100).toFixed(1)} %`;
export const count = (value: number) => value.toLocaleString("en-US");
export const plural = (n: number, one: string, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
