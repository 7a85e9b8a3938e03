import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Writes the programs of the event loop's threads as literals, which no bundler, minifier or coverage tool rewrites. */
export async function writeThreadPrograms(compiled) {
  const source = join(compiled, 'event-loop/sampler-source.js');
  const literals = Object.entries(await import(pathToFileURL(resolve(source)))).map(
    ([name, program]) => `export const ${name} = () => ${JSON.stringify(program())};\n`,
  );
  writeFileSync(source, literals.join(''));
}
