import * as nest from '@nestjs/common';
import { PerfError } from '../core/perf.error.js';
import type { SentError } from './thread-pool.js';
import { isCloneable } from './transferables.js';

const OWN = new Set(['name', 'message', 'stack']);
/** Hidden from a look at an error's keys: not enumerable, or a getter of its class. */
const ALSO = ['cause', 'errors', 'status', 'statusCode'];
const NATIVE = [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError];

/** An error, or whatever was thrown, as it can go to another thread. Never throws. */
export function sentError(thrown: unknown): SentError {
  try {
    return thrown instanceof Error ? described(thrown) : plainError(`Not an error was thrown: ${String(thrown)}`);
  } catch {
    return plainError('Something was thrown that cannot be read');
  }
}

const plainError = (message: string): SentError => {
  return { name: 'Error', message, stack: undefined, http: null, properties: {} };
};

function described(thrown: Error): SentError {
  const { name, message, stack } = thrown as { name: unknown; message: unknown; stack?: string };
  const http =
    thrown instanceof nest.HttpException ? { status: thrown.getStatus(), response: plain(thrown.getResponse()) } : null;
  const properties: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(thrown), ...ALSO])) {
    const value: unknown = OWN.has(key) ? undefined : Reflect.get(thrown, key);
    if (value !== undefined && isCloneable(value)) properties[key] = value;
  }
  return { name: String(name), message: String(message), stack, http, properties };
}

/** The error again, of the class that has its name where that is Nest's, Node's or ours. */
export function errorFrom({ name, message, stack, http, properties }: SentError): Error {
  const error = http === null ? new Error(message) : new nest.HttpException(http.response, http.status);
  const known = classNamed(name, http !== null);
  if (known !== null) Object.setPrototypeOf(error, known.prototype as object);
  for (const [key, value] of Object.entries({ ...properties, name, message, stack })) {
    const enumerable = !OWN.has(key) && key !== 'cause' && key !== 'errors';
    Object.defineProperty(error, key, { value, configurable: true, writable: true, enumerable });
  }
  return error;
}

function classNamed(name: string, isHttp: boolean): { prototype: unknown } | null {
  if (name === 'PerfError') return PerfError;
  if (!isHttp) return NATIVE.find((native) => native.name === name) ?? null;
  const exported = (nest as Record<string, unknown>)[name];
  const isException = typeof exported === 'function' && exported.prototype instanceof nest.HttpException;
  return isException ? exported : null;
}

const plain = (response: string | object): string | object =>
  isCloneable(response) ? response : (JSON.parse(JSON.stringify(response)) as object);
