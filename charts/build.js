// Bundles charts.js, with the notices of all that is in it, into what the page of a profile carries.
import { build } from "esbuild";
import { existsSync, readFileSync } from "node:fs";

const packages = ["echarts", "zrender", "tslib", "@dagrejs/dagre", "@dagrejs/graphlib"];
const read = (name, file) => readFileSync(new URL(`node_modules/${name}/${file}`, import.meta.url), "utf8");
const notices = packages.map((name) => {
  const { version, license } = JSON.parse(read(name, "package.json"));
  const files = ["NOTICE", "LICENSE", "LICENSE.txt", "licenses/LICENSE-d3"].filter((file) =>
    existsSync(new URL(`node_modules/${name}/${file}`, import.meta.url)));
  // Of the Apache License, which is Gradix' own, the notices alone.
  const texts = files.filter((file) => !(license === "Apache-2.0" && file === "LICENSE"));
  return [`${name} ${version}, ${license}`, ...texts.map((file) => read(name, file).trim())].join("\n\n");
});

await build({
  entryPoints: ["charts.js"],
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "gradixCharts",
  target: "es2020",
  legalComments: "none",
  banner: { js: `/*!\n${notices.join("\n\n----\n\n")}\n*/` },
  outfile: "../gradix/_api/costs/web/charts.min.js",
});
