import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** `nestjs-perf-<name in the application's package.json>`: services that share a Redis have a queue each. */
export function defaultQueueName(): string {
  const name = applicationName();
  if (name === null) return 'nestjs-perf';
  // BullMQ allows no colon, and dashboards no slash.
  return `nestjs-perf-${name.replaceAll(/[^\w.-]+/g, '-').replace(/^-/, '')}`;
}

/** Of the package that the started file is in; a test runner's file is in its own, so then of the working directory. */
function applicationName(): string | null {
  const [, started] = process.argv;
  if (started !== undefined && !/[/\\]node_modules[/\\]/.test(started)) {
    const name = nameAbove(dirname(started));
    if (name !== null) return name;
  }
  return nameAbove(process.cwd());
}

function nameAbove(folder: string): string | null {
  for (let at = folder; ; at = dirname(at)) {
    try {
      const { name } = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8')) as { name?: unknown };
      if (typeof name === 'string' && name !== '') return name;
    } catch {
      // None here, or none that can be read: the next one up counts.
    }
    if (dirname(at) === at) return null;
  }
}
