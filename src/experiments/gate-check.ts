import { attach } from '../core/attachment.js';
import type { RequestState } from '../core/request-state.js';

/** Decides gates for requests. */
export interface GateCheck {
  /** The variant of a request, decided at the first question and kept. Never throws. */
  isOn(state: RequestState, gate: string): boolean;
}

/** An application's; there is none with experiments off. */
export const GATES = attach<GateCheck>('application');
