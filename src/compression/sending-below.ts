import { ServerResponse } from 'node:http';
import type { Sending } from './chunk.js';

/** Functions below the hold: the response's own, else those that its prototype has at the call. An agent may patch it meanwhile. */
export class SendingBelow implements Sending {
  private readonly own: Partial<Sending>;

  constructor(private readonly response: ServerResponse) {
    const { writeHead, write, end, flushHeaders } = response as unknown as Sending;
    const { prototype } = ServerResponse;
    // Read once: nearly every response has no function of its own but `writeHead`.
    this.own = { writeHead };
    if (write !== prototype.write && Object.hasOwn(response, 'write')) this.own.write = write;
    if (end !== prototype.end && Object.hasOwn(response, 'end')) this.own.end = end;
    if (flushHeaders !== prototype.flushHeaders && Object.hasOwn(response, 'flushHeaders'))
      this.own.flushHeaders = flushHeaders;
  }

  get writeHead(): Sending['writeHead'] {
    return this.own.writeHead!;
  }

  get write(): Sending['write'] {
    return this.own.write ?? this.inherited.write;
  }

  get end(): Sending['end'] {
    return this.own.end ?? this.inherited.end;
  }

  get flushHeaders(): Sending['flushHeaders'] {
    return this.own.flushHeaders ?? this.inherited.flushHeaders;
  }

  private get inherited(): Sending {
    return Object.getPrototypeOf(this.response) as Sending;
  }
}
