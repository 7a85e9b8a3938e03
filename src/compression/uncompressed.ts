import type { Type } from '@nestjs/common';
import { decorateMethods, requireMethod, wrapMethod } from '../request/decorated-method.js';
import { storedRequest } from '../request/request-state.js';
import { routeMethodNames } from '../request/handlers.js';
import { NO_COMPRESSION_METADATA } from '../request/route-handler.js';

/**
 * Sends the responses of a handler, or of every handler of a controller, without a content coding and keeps none of them
 * (beside `@SharedResponse()` the answer is shared unencoded). For responses that mix a secret (a token, a CSRF value, a
 * signed URL) with text that a request can choose: their length would reveal the secret (BREACH). On a method that serves
 * no route the boot stops with `PERF_ERR_DECORATOR`.
 */
export function NoCompression(): MethodDecorator & ClassDecorator {
  const skipCompression = (descriptor: PropertyDescriptor): void =>
    wrapMethod(descriptor, (method) => ({
      wrapper(this: unknown, ...parameters: unknown[]): unknown {
        const state = storedRequest();
        if (state !== undefined) state.uncompressed = true;
        return method.apply(this, parameters);
      },
      metadata: [[NO_COMPRESSION_METADATA, true]],
    }));
  return (target: object, key?: string | symbol, descriptor?: PropertyDescriptor): void => {
    if (key !== undefined) return skipCompression(requireMethod('@NoCompression()', target, key, descriptor));
    // Covers routes of subclasses, and for answers that an interceptor gives in the handler's place.
    Reflect.defineMetadata(NO_COMPRESSION_METADATA, true, target);
    decorateMethods(target as Type, routeMethodNames(target as Type), skipCompression);
  };
}

/** Whether `@NoCompression()` decorates a method, or the class of a route. */
export const isUncompressed = (handler: object): boolean => Reflect.hasMetadata(NO_COMPRESSION_METADATA, handler);
