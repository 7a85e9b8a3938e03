import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { lifecycleOf, stateOf } from '../../http/lifecycle.js';
import { SHARED_ANSWER } from '../route-compression.js';
import { SharedResponseFound } from './shared-response.guard.js';

/** Sends the answer that the guard has found. The hook that sees every body recognises it by the request's state. */
@Catch(SharedResponseFound)
export class SharedResponseFilter implements ExceptionFilter {
  catch({ kept }: SharedResponseFound, host: ArgumentsHost): void {
    const state = stateOf(host.getArgByIndex(0));
    // The guard found the answer through it.
    if (state === null || kept === null) return;
    SHARED_ANSWER.set(state, kept);
    const answer = { status: 200, headers: Object.fromEntries(kept.headers), body: kept.entry.source };
    lifecycleOf(state).platform?.answer(host.getArgByIndex(1), answer);
  }
}
