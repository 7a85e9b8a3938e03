import type { ServerResponse } from 'node:http';
import { pipeline, Writable, type Transform } from 'node:stream';
import { override } from './late.js';

interface EncodedStream {
  readonly response: ServerResponse;
  readonly encoder: Transform;
  /** Node's own `write`. */
  readonly write: (chunk: unknown) => boolean;
  /** Whether the application has ended the response. */
  isEnded(this: void): boolean;
}

/**
 * Sends an encoder's output. The response emits `drain` when the encoder drains: Node's own `drain` covers encoded bytes only.
 * `done` is called once, without an error when all is sent.
 */
export function sendEncoded(
  { response, encoder, write, isEnded }: EncodedStream,
  done: (error: Error | null | undefined) => void,
): void {
  const emit = response.emit.bind(response) as (...event: unknown[]) => boolean;
  // `writableLength` stays Node's own: Node 26 reads it to decide whether a `drain` is due.
  const restore = override(response, [
    ['writableNeedDrain', { get: () => encoder.writableNeedDrain }],
    ['writableEnded', { get: isEnded }],
  ]);
  let drained = (): void => {};
  response.emit = (...event: unknown[]): boolean => {
    if (event[0] !== 'drain') return emit(...event);
    drained();
    return true;
  };
  encoder.on('drain', () => isEnded() || emit('drain'));
  const sent = new Writable({
    write: (chunk, _encoding, next) => {
      drained = () => {};
      if (write.call(response, chunk)) next();
      else drained = next;
    },
  });
  response.once('close', () => encoder.destroy());
  pipeline(encoder, sent, (error) => {
    if (!error && !response.destroyed) restore();
    done(error);
  });
}
