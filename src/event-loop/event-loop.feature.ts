import { CURRENT_REQUEST } from '../core/current-request.js';
import type { Resolved } from '../core/option.js';
import { RECORD_HOLD } from '../core/record-hold.js';
import { SCHEDULING } from '../core/scheduling.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { Feature, FeatureDefinition, FeatureHost } from '../http/feature.js';
import { ROUTE_RUNNER } from '../http/route-functions.js';
import { EventLoop } from './event-loop.js';
import { eventLoopOption } from './event-loop.options.js';

type Options = NonNullable<Resolved<typeof eventLoopOption>>;

/** The event loop of one application, and what it offers to others: verdicts, the current request, named route functions. */
class EventLoopFeature implements Feature {
  private readonly loop: EventLoop;

  constructor(
    options: Options,
    private readonly host: FeatureHost,
  ) {
    const { recorder, report, requests } = host;
    this.loop = new EventLoop(options, requests, recorder, report, SCHEDULING.get(requests));
    RECORD_HOLD.set(requests, this.loop.hold);
    CURRENT_REQUEST.set(requests, () => this.loop.currentRequest());
    ROUTE_RUNNER.set(requests, this.loop.routes);
  }

  install(): void {
    this.host.handlers.aroundAll(this.loop.around);
    this.loop.install();
  }

  start(): void {
    this.loop.start();
  }

  snapshot(): Pick<PerfSnapshot, 'eventLoop'> {
    return { eventLoop: this.loop.snapshot() };
  }

  async idle(): Promise<void> {
    await this.loop.settled();
  }

  async drain(): Promise<void> {
    await this.loop.close();
  }
}

export const eventLoopFeature: FeatureDefinition<'eventLoop', Options> = {
  name: 'eventLoop',
  title: 'event loop',
  observes: 'context',
  option: eventLoopOption,
  create: (options, host) => (options === null ? {} : new EventLoopFeature(options, host)),
};
