import { HttpException } from '@nestjs/common';
import { PerfError } from '../core/perf.error.js';
import { describeReason } from '../core/reason.js';

/** An error on its way to another thread. */
export type SentError = ReturnType<typeof sendError>;

/** Describes an error, or any value that was thrown, for another thread. Never throws. */
export function sendError(thrown: unknown) {
  try {
    return readError(
      thrown instanceof Error ? thrown : new Error(`Not an error was thrown: ${describeReason(thrown, 1_000)}`),
    );
  } catch (error) {
    // A getter of it throws, or its message is no text.
    return readError(new Error(`An error that cannot be read was thrown: ${describeReason(error)}`));
  }
}

function readError(error: Error) {
  const { name, message, stack, code, status, statusCode, expose } = error as unknown as Record<string, unknown>;
  const isNests = error instanceof HttpException;
  const statuses = isNests ? [error.getStatus()] : [status, statusCode];
  return {
    name: String(name),
    message: String(message),
    stack: String(stack),
    code: typeof code === 'string' || typeof code === 'number' ? code : undefined,
    status: statuses.find((each) => typeof each === 'number'),
    /** Nest answers with the error's status where this is true. */
    expose: typeof expose === 'boolean' ? expose : undefined,
    response: isNests ? readResponse(error) : undefined,
  };
}

/** The response as clients get it: any object, without what is no JSON. Its message where it is no JSON at all. */
function readResponse(error: HttpException): string | object {
  try {
    return JSON.parse(JSON.stringify(error.getResponse())) as string | object;
  } catch {
    return error.message;
  }
}

/** Makes the error again: an `HttpException`, a `PerfError`, or else an `Error`. */
export function receiveError({ name, message, stack, code, status, expose, response }: SentError): Error {
  const error = response === undefined ? new Error(message) : new HttpException(response, status ?? 500);
  if (response === undefined && name === 'PerfError') Object.setPrototypeOf(error, PerfError.prototype);
  for (const [key, value] of Object.entries({ name, message, stack })) {
    Object.defineProperty(error, key, { configurable: true, writable: true, enumerable: false, value });
  }
  if (code !== undefined) Object.assign(error, { code });
  if (response === undefined && status !== undefined) Object.assign(error, { status, statusCode: status, expose });
  return error;
}
