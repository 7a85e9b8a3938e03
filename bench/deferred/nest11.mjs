// With `--import`: everything of Nest comes from test/nest11, so that the same servers run on Nest 11.
import { createRequire, register } from 'node:module';
import { pathToFileURL } from 'node:url';

const nest11 = createRequire(new URL('../../test/nest11/package.json', import.meta.url));
const SHARED = /^(@nestjs\/|rxjs$|rxjs\/|reflect-metadata$)/;

export function resolve(specifier, context, next) {
  if (SHARED.test(specifier)) return next(pathToFileURL(nest11.resolve(specifier)).href, context);
  return next(specifier, context);
}

register(import.meta.url);
