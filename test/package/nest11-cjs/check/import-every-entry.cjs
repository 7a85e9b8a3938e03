// Writes one module that imports every entry, as CommonJS and as an ECMAScript module, for the compiler to read.
const { mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

const subpaths = Object.keys(require('nestjs-perf/package.json').exports).filter((path) => path !== './package.json');
const imports = subpaths.map(
  (path, index) => `import * as entry${index} from '${path.replace('.', 'nestjs-perf')}';\n`,
);
const source = `${imports.join('')}export const entries: object[] = [${subpaths.map((_, index) => `entry${index}`).join(', ')}];\n`;
const folder = join(__dirname, '..', 'dist');
mkdirSync(folder, { recursive: true });
for (const extension of ['cts', 'mts']) writeFileSync(join(folder, `entries.${extension}`), source);
