import { HttpException } from '@nestjs/common';
import { PerfError } from '../core/perf.error.js';
import type { SentError } from './thread-pool.js';
import { isCloneable } from './transferables.js';

const NATIVE: readonly ErrorConstructor[] = [RangeError, ReferenceError, SyntaxError, TypeError, URIError, EvalError];

/** Describes an error, or any value that was thrown, for another thread. Never throws. */
export function sendError(thrown: unknown): SentError {
  try {
    if (!(thrown instanceof Error)) return { name: 'Error', message: `Not an error was thrown: ${String(thrown)}` };
    const { name, message, stack } = thrown as { name: unknown; message: unknown; stack?: unknown };
    const { code, status, statusCode, expose } = thrown as Error & Partial<Record<string, unknown>>;
    const numbers = thrown instanceof HttpException ? [thrown.getStatus()] : [status, statusCode];
    return {
      name: String(name),
      message: String(message),
      stack: typeof stack === 'string' ? stack : undefined,
      code: typeof code === 'string' || typeof code === 'number' ? code : undefined,
      status: numbers.find((number) => typeof number === 'number'),
      expose: typeof expose === 'boolean' ? expose : undefined,
      response: thrown instanceof HttpException ? plain(thrown.getResponse()) : undefined,
    };
  } catch {
    return { name: 'Error', message: 'A value was thrown that cannot be read' };
  }
}

/** Makes the error again: an `HttpException`, a `PerfError`, one of the language's own, else an `Error`. */
export function receiveError({ name, message, stack, code, status, expose, response }: SentError): Error {
  const error = response === undefined ? new Error(message) : new HttpException(response, status ?? 500);
  const known = name === 'PerfError' ? PerfError : NATIVE.find((native) => native.name === name);
  if (response === undefined && known !== undefined) Object.setPrototypeOf(error, known.prototype);
  const hidden = { configurable: true, writable: true, enumerable: false };
  for (const [key, value] of Object.entries({ name, message, stack })) {
    Object.defineProperty(error, key, { ...hidden, value });
  }
  if (code !== undefined) Object.assign(error, { code });
  if (status !== undefined && response === undefined) Object.assign(error, { status, statusCode: status });
  if (expose !== undefined) Object.assign(error, { expose });
  return error;
}

const plain = (response: string | object): string | object =>
  isCloneable(response) ? response : (JSON.parse(JSON.stringify(response)) as object);
