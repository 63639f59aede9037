// Colours. Series have those of Okabe and Ito, which colour-blind people can tell apart. Amounts are
// a ramp whose lightness is monotonic: from near the background to far from it.

export type Theme = "auto" | "light" | "dark";
const kThemes: Theme[] = ["auto", "light", "dark"];
type RGB = [number, number, number];

export const series =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c7a00", "#7d8597"];
const kLight: RGB[] = [[196, 206, 217], [225, 158, 60], [178, 60, 24], [84, 9, 9]];
const kDark: RGB[] = [[66, 78, 92], [150, 82, 38], [229, 136, 45], [255, 236, 160]];

export const isDark = (): boolean => {
  const chosen = document.documentElement.dataset["theme"];
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
export const variable = (name: string) =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function ramp(part: number): string {
  const stops = isDark() ? kDark : kLight;
  const at = Math.max(0, Math.min(1, part)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at));
  const [from, to] = [stops[i]!, stops[i + 1]!];
  return `rgb(${from.map((v, c) => Math.round(v + (to[c]! - v) * (at - i))).join(",")})`;
}
export const rampGradient = () =>
    `linear-gradient(90deg, ${[0, 1, 2, 3].map((i) => ramp(i / 3)).join(", ")})`;

// The button goes through automatic, light and dark; `changed` draws anew.
export function themeButton(button: HTMLElement, changed: () => void): void {
  let theme: Theme = "auto";
  const say = () => {
    button.textContent = `Theme: ${theme}`;
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
  };
  say();
  button.addEventListener("click", () => {
    theme = kThemes[(kThemes.indexOf(theme) + 1) % kThemes.length]!;
    say();
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (theme === "auto") changed();
  });
}
