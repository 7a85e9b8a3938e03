import type { Server } from 'node:http';
import type { Resolved } from '../core/option.js';
import { RECORD_HOLD } from '../core/record-hold.js';
import { CURRENT_REQUEST } from '../core/request-state.js';
import { DENIED_NAMES } from '../core/safe-request.js';
import { SCHEDULING } from '../core/scheduling.js';
import type { FeatureDefinition } from '../http/feature.js';
import { ROUTE_RUNNER } from '../http/route-functions.js';
import { EventLoop } from './event-loop.js';
import { eventLoopOption } from './event-loop.options.js';

/** The event loop of one application, and what it offers to others: classifications, the current request, named route functions. */
export const eventLoopFeature: FeatureDefinition<'eventLoop', NonNullable<Resolved<typeof eventLoopOption>>> = {
  name: 'eventLoop',
  title: 'event loop',
  observes: 'context',
  option: eventLoopOption,
  create(options, { requests, recorder, report, handlers }) {
    if (options === null) return {};
    const loop = new EventLoop(options, requests, recorder, report, SCHEDULING.get(requests));
    DENIED_NAMES.set(requests, options.replay?.denyNames ?? []);
    RECORD_HOLD.set(requests, loop.pending);
    CURRENT_REQUEST.set(requests, (below) => loop.currentRequest(below));
    ROUTE_RUNNER.set(requests, loop.naming);
    return {
      install({ adapter, modules }) {
        handlers.aroundAll(loop.around);
        loop.install(adapter?.getHttpServer() as Server | undefined, modules);
      },
      start: () => loop.start(),
      snapshot: () => ({ eventLoop: loop.snapshot() }),
      idle: () => loop.settled(),
      drain: () => loop.close(),
    };
  },
};
