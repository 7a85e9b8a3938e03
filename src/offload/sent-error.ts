import * as nest from '@nestjs/common';
import { PerfError } from '../core/perf.error.js';
import type { SentError } from './thread-pool.js';

const OWN = new Set(['name', 'message', 'stack']);
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
  for (const [key, value] of Object.entries(thrown)) {
    if (!OWN.has(key) && isCloneable(value)) properties[key] = value;
  }
  return { name: String(name), message: String(message), stack, http, properties };
}

/** The error again, of the class that has its name where that is Nest's, Node's or ours. */
export function errorFrom({ name, message, stack, http, properties }: SentError): Error {
  const error = http === null ? new Error(message) : new nest.HttpException(http.response, http.status);
  const known = classNamed(name, http !== null);
  if (known !== null) Object.setPrototypeOf(error, known.prototype as object);
  Object.assign(error, properties);
  for (const [key, value] of Object.entries({ name, message, stack })) {
    Object.defineProperty(error, key, { value, configurable: true, writable: true, enumerable: false });
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

function isCloneable(value: unknown): boolean {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
}
