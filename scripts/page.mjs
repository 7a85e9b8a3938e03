// The page of the dashboard as ready bytes: script and style of src/dashboard/page, bundled, compressed, in one module.
// The build writes it beside the compiled sources, `node scripts/page.mjs` (and the tests' setup) into src, where git ignores it.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { rolldown } from 'rolldown';

const SOURCES = 'src/dashboard/page';
/** In the order in which one rule outranks another. */
const STYLES = ['base', 'sections', 'tables'];
const IN_SRC = 'src/dashboard/page-assets.js';

/** Bundles the page and writes it to `target`; returns how many bytes a browser loads. */
export async function buildPage(target) {
  const bundle = await rolldown({
    input: join(SOURCES, 'app.tsx'),
    platform: 'browser',
    tsconfig: join(SOURCES, 'tsconfig.json'),
    resolve: { extensionAlias: { '.js': ['.ts', '.tsx', '.js'] } },
  });
  const { output } = await bundle.generate({ format: 'esm', minify: true, comments: false });
  await bundle.close();
  const styles = STYLES.map((name) => join(SOURCES, `${name}.css`));
  const style = styles.map((file) => readFileSync(file, 'utf8').replaceAll(/\/\*.*?\*\//gs, '')).join('\n');
  const assets = { script: buildAsset(output[0].code, 'js'), style: buildAsset(style, 'css') };
  // Several runs of the tests may do so at a time.
  writeFileSync(`${target}.${process.pid}`, `export const pageAssets = ${JSON.stringify(assets)};\n`);
  renameSync(`${target}.${process.pid}`, target);
  return Object.values(assets).reduce((sum, { brotli }) => sum + Buffer.from(brotli, 'base64').length, 0);
}

/** Builds the page into src, unless the bundle is newer than all of its sources. */
export async function buildPageInSources() {
  const sources = readdirSync(SOURCES, { recursive: true }).map((file) => join(SOURCES, file));
  const shared = [
    'scripts/page.mjs',
    'src/dashboard/format.ts',
    'src/dashboard/sections.ts',
    'src/dashboard/view.ts',
    'package-lock.json',
  ];
  const newest = Math.max(...[...shared, ...sources].map(readTime));
  if (readTime(IN_SRC) < newest) await buildPage(IN_SRC);
}

function readTime(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function buildAsset(text, extension) {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 8);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: text.length };
  return { name: `app-${hash}.${extension}`, brotli: brotliCompressSync(text, { params }).toString('base64') };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) console.log(`${await buildPage(IN_SRC)} bytes`);
