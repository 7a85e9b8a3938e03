import type { Type } from '@nestjs/common';
import type { Origin } from './counters.js';
import type { AnyWork, ProvidedWork } from './decorator/work-providers.js';
import type { DeferWhen } from './deferred-work.js';
import type { TaskSequence } from './tasks/task.js';
import type { WorkOptions } from './work-options.js';

/** A class of work and how it is to run. */
export interface ClassWork extends WorkOptions, ProvidedWork {
  readonly name: string;
  readonly type: Type<AnyWork>;
  /** For errors: where it was started. */
  readonly place: string;
}

export interface Arming {
  readonly when: DeferWhen | null;
  readonly origin: Origin | null;
  readonly sequence: TaskSequence;
}
