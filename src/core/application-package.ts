import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** What an application's package.json tells. */
export interface ApplicationPackage {
  readonly name: string;
  readonly version: string | null;
}

/** Where the started file is; a test runner's file is in a package of its own, so then the working directory. */
export function applicationFolder(): string {
  const [, started] = process.argv;
  return started === undefined || /[/\\]node_modules[/\\]/.test(started) ? process.cwd() : dirname(started);
}

/** Of the package that the started file is in, else of the one that the working directory is in. */
export const applicationPackage = (): ApplicationPackage | null =>
  packageAbove(applicationFolder()) ?? packageAbove(process.cwd());

function packageAbove(folder: string): ApplicationPackage | null {
  for (let at = folder; ; at = dirname(at)) {
    try {
      const { name, version } = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8')) as Record<string, unknown>;
      if (typeof name === 'string' && name !== '')
        return { name, version: typeof version === 'string' && version !== '' ? version : null };
    } catch {
      // None here, or none that can be read: the next one up counts.
    }
    if (dirname(at) === at) return null;
  }
}
