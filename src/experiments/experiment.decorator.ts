import { createParamDecorator, type ExecutionContext, type Type } from '@nestjs/common';
import { decorateMethods, requireMethod, wrapMethod } from '../request/decorated-method.js';
import { describe } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import { storedRequest } from '../request/request-state.js';
import { requireRoutes } from '../request/handlers.js';
import { stateOf } from '../request/tracker.js';

/**
 * Puts a handler, or every handler of a controller, into the experiment behind a gate: the variant is decided before the
 * handler runs, after guards and pipes, and is written on the request's record.
 * @throws PERF_ERR_DECORATOR when the gate has no name
 */
export function Experiment(gate: string): MethodDecorator & ClassDecorator {
  requireName(gate, '@Experiment()');
  const decideGate = (descriptor: PropertyDescriptor): void =>
    wrapMethod(descriptor, (method) => ({
      wrapper(this: unknown, ...parameters: unknown[]): unknown {
        const state = storedRequest();
        state?.owner.experiments?.isOn(state, gate);
        return method.apply(this, parameters);
      },
    }));
  return (target: object, key?: string | symbol, descriptor?: PropertyDescriptor): void => {
    if (key !== undefined) decideGate(requireMethod('@Experiment()', target, key, descriptor));
    else decorateMethods(target as Type, requireRoutes('@Experiment()', target as Type), decideGate);
  };
}

/**
 * A handler's parameter: `'on'` or `'off'`, the variant of the gate for this request.
 * @throws PERF_ERR_DECORATOR when the gate has no name
 */
export const Variant = (gate: string): ParameterDecorator => {
  requireName(gate, '@Variant()');
  return readVariant(gate);
};

const readVariant = createParamDecorator((gate: string, context: ExecutionContext): 'on' | 'off' => {
  const state = stateOf(context.switchToHttp().getRequest()) ?? storedRequest() ?? null;
  return state?.owner.experiments?.isOn(state, gate) === true ? 'on' : 'off';
});

function requireName(gate: unknown, decorator: string): void {
  if (typeof gate === 'string' && gate !== '') return;
  throw new PerfError('PERF_ERR_DECORATOR', `${decorator} must be given the name of a gate, got ${describe(gate)}.`);
}
