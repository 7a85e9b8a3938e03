import { UseGuards, type CanActivate } from '@nestjs/common';
import { requireMethod } from '../request/decorated-method.js';
import { GUARDS_METADATA } from '../request/nest-metadata.js';
import { storedRequest } from '../request/request-state.js';

/** Marks the request before interceptors and the handler run: an interceptor may answer in the handler's place. */
class NoCompressionGuard implements CanActivate {
  canActivate(): true {
    const state = storedRequest();
    if (state !== undefined) state.uncompressed = true;
    return true;
  }
}

/**
 * Sends the responses of a handler, or of every handler of a controller, without a content coding and keeps none of them
 * (beside `@SharedResponse()` the answer is shared unencoded). For responses that mix a secret (a token, a CSRF value, a
 * signed URL) with text that a request can choose: their length would reveal the secret (BREACH). On a method that serves
 * no route the boot stops with `PERF_ERR_DECORATOR`.
 */
export function NoCompression(): MethodDecorator & ClassDecorator {
  const useGuard = UseGuards(new NoCompressionGuard());
  return (target: object, key?: string | symbol, descriptor?: PropertyDescriptor): void => {
    if (key === undefined) useGuard(target as Function);
    else useGuard(target, key, requireMethod('@NoCompression()', target, key, descriptor));
  };
}

/** Whether `@NoCompression()` decorates a method. */
export const isUncompressed = (method: object): boolean =>
  ((Reflect.getMetadata(GUARDS_METADATA, method) ?? []) as unknown[]).some(
    (guard) => guard instanceof NoCompressionGuard,
  );
