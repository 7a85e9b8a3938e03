// Opens and closes the API with one set of options after the other, each time from the variant's own copy of the library.
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { serveOn } from '../harness/index.mjs';
import { UsersController } from '../overhead/application.mjs';

let app = null;
serveOn(0, {
  /** `options` as `forRoot()` takes them, null for an application without the library; `library`: where its copy lies. */
  async open({ variant: { options, library } }) {
    const imports = options === null ? [] : [(await import(library)).PerfModule.forRoot(options)];
    const module = { module: function AppModule() {}, imports, controllers: [UsersController] };
    app = await NestFactory.create(module, new FastifyAdapter(), { logger: ['error', 'warn'] });
    await app.listen(0, '127.0.0.1');
    return app.getHttpServer().address().port;
  },
  async close() {
    await app.close();
  },
});
