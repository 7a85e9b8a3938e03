import type { ServerResponse } from 'node:http';
import type { Body } from './cache/content-cache.js';

export type End = [chunk?: unknown, encoding?: unknown, callback?: unknown];

/** The functions that every way of answering passes. */
export interface Sending {
  writeHead: (...head: unknown[]) => ServerResponse;
  write: (...chunk: End) => boolean;
  end: (...chunk: End) => ServerResponse;
  flushHeaders: () => void;
}

type Callback = (error?: Error | null) => void;

export const isChunk = (chunk: unknown): chunk is string | Uint8Array =>
  typeof chunk === 'string' || chunk instanceof Uint8Array;

export const callbackOf = (...given: unknown[]): Callback | undefined =>
  given.find((each) => typeof each === 'function') as Callback | undefined;

export const mayEnd = (chunk: unknown): boolean =>
  chunk === undefined || chunk === null || typeof chunk === 'function' || isChunk(chunk);

const encodingOf = (encoding: unknown): BufferEncoding =>
  typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8';

export const byteLength = (chunk: string | Uint8Array, encoding: unknown): number =>
  typeof chunk === 'string' ? Buffer.byteLength(chunk, encodingOf(encoding)) : chunk.byteLength;

export const bytesOf = (chunk: Body, encoding: unknown): Uint8Array =>
  typeof chunk === 'string' ? Buffer.from(chunk, encodingOf(encoding)) : chunk;

/** A text whose bytes are those of UTF-8 stays one: the cache compares it as it is. */
export const textOf = (chunk: Body, encoding: unknown): Body =>
  typeof chunk !== 'string' || encodingOf(encoding).toLowerCase().replace('-', '') === 'utf8'
    ? chunk
    : bytesOf(chunk, encoding);
