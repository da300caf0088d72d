// Bundles the scripts of the web pages into ../static/built, with the licences of all that they contain.
//
// The folder is replaced as a whole once everything in it is complete, so a server never sees half of a build.
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const TARGET = join(HERE, "..", "static", "built");
const PARTIAL = TARGET + ".partial";

/** Yasgui's build holds code of its own dependencies, which esbuild does not see: all of the lock file are named. */
function listPackages() {
  const lock = JSON.parse(readFileSync(join(HERE, "package-lock.json"), "utf8"));
  return Object.entries(lock.packages)
    .filter(([path, entry]) => path && !entry.dev && !entry.optional && existsSync(join(HERE, path)))
    .map(([path, entry]) => {
      const about = JSON.parse(readFileSync(join(HERE, path, "package.json"), "utf8"));
      const licence = about.license ?? about.licenses;
      const files = readdirSync(join(HERE, path)).filter((name) => /^(licen[cs]e|copying|notice)/i.test(name)).sort();
      return {
        name: about.name,
        version: entry.version,
        licence: typeof licence === "string" ? licence : JSON.stringify(licence ?? entry.license ?? "see the text"),
        author: typeof about.author === "string" ? about.author : (about.author?.name ?? ""),
        texts: files.map((name) => readFileSync(join(HERE, path, name), "utf8").trim()),
      };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function writeNotices(packages) {
  const parts = packages.map(({ name, version, licence, author, texts }) =>
    [
      `${name} ${version}`,
      `Licence: ${licence}` + (author ? `\nAuthor: ${author}` : ""),
      ...(texts.length ? texts : ["The package contains no text of its licence."]),
    ].join("\n\n"),
  );
  const head = "Third-party software in the scripts of this folder, with its licences.\n";
  return [head, ...parts].join(`\n${"=".repeat(80)}\n\n`) + "\n";
}

rmSync(PARTIAL, { recursive: true, force: true });
mkdirSync(PARTIAL, { recursive: true });
await build({
  absWorkingDir: HERE,
  entryPoints: ["src/workbench.js", "src/graphs.js"],
  outdir: PARTIAL,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none", // THIRD-PARTY-NOTICES.txt has all licences
  loader: { ".svg": "dataurl", ".png": "dataurl" },
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
});
const countries = join(HERE, "node_modules", "world-atlas", "countries-110m.json");
writeFileSync(join(PARTIAL, "countries.json"), readFileSync(countries));
writeFileSync(join(PARTIAL, "THIRD-PARTY-NOTICES.txt"), writeNotices(listPackages()));
rmSync(TARGET, { recursive: true, force: true });
renameSync(PARTIAL, TARGET);
