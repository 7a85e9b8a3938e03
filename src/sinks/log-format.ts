// Imported as a namespace, because bundles often declare a `createRequire` of their own.
import * as nodeModule from 'node:module';
import { join } from 'node:path';
import { applicationFolder } from '../core/application-package.js';

/** `'text'`: lines for people; `'object'`: one object a message, for machines. */
export type LogFormat = 'text' | 'object';

/** The class `Logger` of `nestjs-pino`; null where the application has no such package. */
export function pinoLogger(): (new (...parameters: never[]) => unknown) | null {
  try {
    const { Logger } = nodeModule.createRequire(join(applicationFolder(), 'main.js'))('nestjs-pino') as {
      Logger?: unknown;
    };
    return typeof Logger === 'function' ? (Logger as new (...parameters: never[]) => unknown) : null;
  } catch {
    // The package is not installed, or bundled into the application, where the option `format` decides.
    return null;
  }
}

/** The format of the application's logger: objects for `nestjs-pino`'s. */
export function formatFor(logger: unknown, pino: typeof pinoLogger = pinoLogger): LogFormat {
  const known = pino();
  return known !== null && logger instanceof known ? 'object' : 'text';
}

/** A message for JSON loggers. Loggers that read `message` or call `toString()` get the line of text. */
export class LogObject {
  readonly msg: string;

  constructor(text: string, fields: object) {
    this.msg = text;
    Object.assign(this, fields);
  }

  get message(): string {
    return this.msg;
  }

  toString(): string {
    return this.msg;
  }
}
