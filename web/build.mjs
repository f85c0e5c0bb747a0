// Bundles src/ into the folder given: three files that ask for nothing else, and the icon.
import { build } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";

const out = process.argv[2] ?? "page";
await mkdir(out, { recursive: true });
await build({
  entryPoints: { page: "src/page.js" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  loader: { ".svg": "dataurl" },
  legalComments: "inline",
  logLevel: "warning",
});
for (const file of ["index.html", "icon.svg"]) await copyFile(`src/${file}`, `${out}/${file}`);
