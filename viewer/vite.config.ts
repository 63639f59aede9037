// One classic script, which report.html contains: bundle/viewer.js. It is committed, so that a
// build of Verbena needs neither Node.js nor a network. Its first line has a digest of the sources,
// by which a test tells whether it is up to date.
import {createHash} from "node:crypto";
import {readdirSync, readFileSync} from "node:fs";
import {defineConfig, type Plugin} from "vite";

function files(folder: string): string[] {
  return readdirSync(folder, {recursive: true, withFileTypes: true})
      .filter((entry) => entry.isFile()).map((entry) => `${entry.parentPath}/${entry.name}`);
}

function firstLine(): string {
  const digest = createHash("sha256");
  for (const file of files("src").sort()) digest.update(readFileSync(file));
  return `/* sources: ${digest.digest("hex")} */\n`;
}

const withDigest: Plugin = {
  name: "digest",
  generateBundle: {
    order: "post",
    handler(_, bundle) {
      for (const file of Object.values(bundle))
        if (file.type === "chunk") file.code = firstLine() + file.code;
    },
  },
};

export default defineConfig({
  plugins: [withDigest],
  build: {
    outDir: "bundle",
    emptyOutDir: false,
    target: "es2020",
    lib: {entry: "src/main.ts", formats: ["iife"], name: "viewer", fileName: () => "viewer.js"},
  },
});
