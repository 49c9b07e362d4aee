// Build the page: `npm ci && npm run build`. The result is committed, so that users need no Node; the
// same sources give the same bytes.
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const OUT = process.env.OUT ?? "../src/tracefork_core/cli/report/built";
const shared = {
  bundle: true,
  minify: true,
  write: false,
  charset: "utf8",
  target: "es2022",
  legalComments: "none",
};

async function bundled(entry, more = {}) {
  const result = await build({ ...shared, entryPoints: [entry], ...more });
  return result.outputFiles[0].text;
}

const worker = await bundled("src/worker.js", { format: "iife" });
const script = await bundled("src/page.js", {
  format: "iife",
  define: { WORKER_SOURCE: JSON.stringify(worker) },
});
const style = await bundled("src/page.css", { loader: { ".css": "css" } });
// In a page, "</script" would end the script, whatever it stands in.
writeFileSync(`${OUT}/page.js`, script.replaceAll("</script", "<\\/script"));
writeFileSync(`${OUT}/page.css`, style);

const { dependencies } = JSON.parse(readFileSync("package.json", "utf8"));
const licences = Object.keys(dependencies)
  .sort()
  .map((name) => {
    const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
    const text = readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim();
    return `${name} ${version}\n\n${text}\n`;
  });
writeFileSync(`${OUT}/LICENSES.txt`, licences.join("\n----\n\n"));
console.log(`page.js ${script.length} characters, page.css ${style.length}`);
