import * as nest from '@nestjs/common';
import { PerfError } from '../core/perf.error.js';
import type { SentError, SentValue } from './thread-pool.js';
import { isCloneable } from './transferables.js';

const OWN = new Set(['name', 'message', 'stack']);
/** Hidden from a look at an error's keys: not enumerable, or a getter of its class. */
const ALSO = ['cause', 'errors', 'status', 'statusCode'];
const NATIVE = [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError];
/** Errors one in the other. */
const MAX_DEPTH = 5;

/** An error, or whatever was thrown, as it can go to another thread. `around`: the errors that hold it. Never throws. */
export function sentError(thrown: unknown, around: readonly Error[] = []): SentError {
  try {
    return thrown instanceof Error
      ? described(thrown, [...around, thrown])
      : plainError(`Not an error was thrown: ${String(thrown)}`);
  } catch {
    return plainError('Something was thrown that cannot be read');
  }
}

const plainError = (message: string): SentError => {
  return { name: 'Error', classes: [], message, stack: undefined, http: null, properties: {} };
};

function described(thrown: Error, within: readonly Error[]): SentError {
  const { name, message, stack } = thrown as { name: unknown; message: unknown; stack?: string };
  const http =
    thrown instanceof nest.HttpException ? { status: thrown.getStatus(), response: plain(thrown.getResponse()) } : null;
  const properties: Record<string, SentValue> = {};
  for (const key of new Set([...Object.keys(thrown), ...ALSO])) {
    const sent = OWN.has(key) ? null : sentValue(Reflect.get(thrown, key), within);
    if (sent !== null) properties[key] = sent;
  }
  const classes: string[] = [];
  for (let at = thrown; (at = Object.getPrototypeOf(at) as Error) !== Error.prototype;) {
    // A class may have a static member of that name.
    const { name: className } = at.constructor as { name: unknown };
    classes.push(String(className));
  }
  return { name: String(name), classes, message: String(message), stack, http, properties };
}

function sentValue(value: unknown, around: readonly Error[]): SentValue | null {
  if (!Array.isArray(value) || !value.some((item) => item instanceof Error)) return sentItem(value, around);
  return { list: value.map((item) => sentItem(item, around)).filter((item) => item !== null) };
}

/** Null: it stays behind, as what cannot be cloned, and errors that hold themselves or are too deep. */
function sentItem(value: unknown, around: readonly Error[]): SentValue | null {
  if (value instanceof Error) {
    const isTooDeep = around.length >= MAX_DEPTH || around.includes(value);
    return isTooDeep ? null : { error: sentError(value, around) };
  }
  return value !== undefined && isCloneable(value) ? { value } : null;
}

function valueFrom(sent: SentValue): unknown {
  if ('error' in sent) return errorFrom(sent.error);
  return 'list' in sent ? sent.list.map(valueFrom) : sent.value;
}

/** The error again, of the nearest of its classes that is Nest's, Node's or ours. */
export function errorFrom({ name, classes, message, stack, http, properties }: SentError): Error {
  const error = http === null ? new Error(message) : new nest.HttpException(http.response, http.status);
  const known = [name, ...classes].map((each) => classNamed(each, http !== null)).find((each) => each !== null);
  if (known !== undefined) Object.setPrototypeOf(error, known.prototype as object);
  const others = Object.entries(properties).map(([key, sent]) => [key, valueFrom(sent)] as const);
  for (const [key, value] of [...others, ...Object.entries({ name, message, stack })]) {
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
