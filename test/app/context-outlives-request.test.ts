import { AsyncResource } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Controller, Get } from '@nestjs/common';
import { afterEach, expect, it } from 'vitest';
import { requestContext } from '../../src/request/request-state.js';
import { adapterOf } from '../fixtures/app.js';
import { closeApps, listeningApp } from '../fixtures/build-app.js';
import { until } from '../fixtures/until.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

afterEach(closeApps);

let context: AsyncResource;
let response: WeakRef<ServerResponse>;

@Controller()
class KeepController {
  @Get('kept')
  kept() {
    context = new AsyncResource('kept');
    response = new WeakRef(requestContext.getStore()!.response!);
    return { ok: true };
  }
}

// Express sets `request.res`, so there the request itself references its response.
it('an async context that outlives its request does not retain the response that was sent', async () => {
  const { url } = await listeningApp(adapterOf('fastify'), { metadata: { controllers: [KeepController] } });
  expect(await (await fetch(`${url}/kept`)).json()).toEqual({ ok: true });
  // The connection's parser references its last response.
  expect((await fetch(`${url}/other`)).status).toBe(404);
  await until('the response to be collected', () => {
    collectGarbage();
    return response.deref() === undefined;
  });
  expect(context.runInAsyncScope(() => requestContext.getStore()!.status)).toBe(200);
});
