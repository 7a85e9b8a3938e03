import {
  Controller,
  Get,
  type MiddlewareConsumer,
  Param,
  Version,
  VERSION_NEUTRAL,
  VersioningType,
  type VersioningOptions,
} from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { byNest } from '../fixtures/app.js';
import { bothForms } from './applications.js';

interface Request {
  url: string;
  headers: Record<string, string>;
}
interface Response {
  setHeader(name: string, value: string): void;
}

@Controller({ path: 'cats', version: '1' })
class CatsV1Controller {
  @Get()
  all() {
    return 'cats of 1';
  }
  @Get(':id')
  one(@Param('id') id: string) {
    return `cat ${id} of 1`;
  }
}

@Controller({ path: 'cats', version: '2' })
class CatsV2Controller {
  @Get()
  all() {
    return 'cats of 2';
  }
  @Version('3')
  @Get()
  allOf3() {
    return 'cats of 3';
  }
}

@Controller({ path: 'several', version: ['1', '2'] })
class SeveralController {
  @Get()
  all() {
    return 'of 1 and 2';
  }
}

@Controller({ path: 'neutral', version: VERSION_NEUTRAL })
class NeutralController {
  @Get()
  all() {
    return 'of no version';
  }
}

@Controller({ path: 'mixed', version: ['2', VERSION_NEUTRAL] })
class MixedController {
  @Get()
  all() {
    return 'of 2 or of no version';
  }
}

@Controller('unversioned')
class UnversionedController {
  @Get()
  all() {
    return 'unversioned';
  }
  @Version('1')
  @Get('one')
  one() {
    return 'one of 1';
  }
}

const controllers = [
  CatsV1Controller,
  CatsV2Controller,
  SeveralController,
  NeutralController,
  MixedController,
  UnversionedController,
];

const types: [string, VersioningOptions, (version: string, path: string) => [string, Record<string, string>]][] = [
  ['the URI', { type: VersioningType.URI }, (version, path) => [`/v${version}${path}`, {}]],
  [
    'the URI with a prefix of its own',
    { type: VersioningType.URI, prefix: 'version-' },
    (version, path) => [`/version-${version}${path}`, {}],
  ],
  [
    'a header',
    { type: VersioningType.HEADER, header: 'X-Version' },
    (version, path) => [path, { 'x-version': version }],
  ],
  [
    'the media type',
    { type: VersioningType.MEDIA_TYPE, key: 'v=' },
    (version, path) => [path, { accept: `application/json;v=${version}` }],
  ],
  [
    'what the application extracts',
    {
      type: VersioningType.CUSTOM,
      extractor: (request) => (request as Request).headers['x-wanted']?.split(',') ?? '',
    },
    (version, path) => [path, { 'x-wanted': version }],
  ],
];

describe.each(byNest('express'))('on %s', (adapter) => {
  describe.each(types)('versions by %s', (_name, options, requestOf) => {
    const { ask } = bothForms(adapter, () => ({ controllers, main: (app) => app.enableVersioning(options) }));
    const get = (version: string | null, path: string) => {
      if (version === null) return ask(path);
      const [url, headers] = requestOf(version, path);
      return ask(url, { headers });
    };

    it.each([
      ['1', '/cats', 'cats of 1'],
      ['2', '/cats', 'cats of 2'],
      ['3', '/cats', 'cats of 3'],
      ['1', '/cats/7', 'cat 7 of 1'],
      ['1', '/several', 'of 1 and 2'],
      ['2', '/several', 'of 1 and 2'],
      ['2', '/mixed', 'of 2 or of no version'],
      ['1', '/unversioned/one', 'one of 1'],
    ])('version %s of %s is "%s"', async (version, path, text) => {
      expect(await get(version, path)).toMatchObject({ status: 200, text });
    });

    it.each([
      ['/neutral', 'of no version'],
      ['/unversioned', 'unversioned'],
    ])('no version of %s is "%s"', async (path, text) => {
      expect(await get(null, path)).toMatchObject({ status: 200, text });
    });

    it.each([
      ['4', '/cats'],
      ['2', '/cats/7'],
      ['2', '/unversioned/one'],
    ])('version %s of %s is not found', async (version, path) => {
      expect((await get(version, path)).status).toBe(404);
    });

    it('no version of a route that is of 2 and of none is answered as Nest says', async () => {
      expect([200, 404]).toContain((await get(null, '/mixed')).status);
    });

    it('no version of a versioned route is not found', async () => {
      expect((await get(null, '/cats')).status).toBe(404);
    });
  });

  describe('versions with a default', () => {
    const { ask } = bothForms(adapter, () => ({
      controllers,
      main: (app) => app.enableVersioning({ type: VersioningType.HEADER, header: 'X-Version', defaultVersion: ['1'] }),
    }));

    it('take the default for what has none', async () => {
      expect(await ask('/unversioned', { headers: { 'x-version': '1' } })).toMatchObject({ text: 'unversioned' });
      expect((await ask('/unversioned', { headers: { 'x-version': '2' } })).status).toBe(404);
    });
  });

  describe('versions with middleware and a global prefix', () => {
    const mark = (name: string) => (_request: unknown, response: Response, next: () => void) => {
      response.setHeader('x-middleware', name);
      next();
    };
    const { ask } = bothForms(adapter, () => ({
      controllers,
      configure: (consumer: MiddlewareConsumer) =>
        consumer
          .apply(mark('of version 1'))
          .forRoutes({ path: '/cats', version: '1', method: 0 })
          .apply(mark('of the controller'))
          .forRoutes(SeveralController),
      main: (app) => app.setGlobalPrefix('api').enableVersioning({ type: VersioningType.URI }),
    }));

    it.each([
      ['/api/v1/cats', 'of version 1'],
      ['/api/v2/cats', undefined],
      ['/api/v1/several', 'of the controller'],
      ['/api/v2/several', 'of the controller'],
    ])('%s runs the middleware %s', async (path, middleware) => {
      const { status, headers } = await ask(path);
      expect({ status, middleware: headers['x-middleware'] }).toEqual({ status: 200, middleware });
    });
  });
});
