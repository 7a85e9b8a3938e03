import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { ServerResponse } from 'node:http';
import { stateOf } from '../../http/request-lifecycle.js';
import { SharedResponseFound } from './shared-response.guard.js';

interface FastifyReply {
  readonly raw: ServerResponse;
  code(status: number): FastifyReply;
  header(name: string, value: unknown): FastifyReply;
  send(body: unknown): unknown;
}

/** Sends the answer that the guard has found. The hook that sees every body recognises it by the request's state. */
@Catch(SharedResponseFound)
export class SharedResponseFilter implements ExceptionFilter {
  catch({ kept }: SharedResponseFound, host: ArgumentsHost): void {
    const state = stateOf(host.getArgByIndex(0));
    if (state !== null) state.shared = kept;
    const response = host.getArgByIndex<ServerResponse | FastifyReply>(1);
    if (response !== state?.response && 'raw' in response) {
      response.code(200);
      for (const [name, value] of kept.headers) response.header(name, value);
      response.send(kept.entry.source);
    } else {
      response.statusCode = 200;
      for (const [name, value] of kept.headers) response.setHeader(name, value);
      response.end(kept.entry.source);
    }
  }
}
