import { setFlagsFromString } from 'node:v8';
import { Controller, Get, Inject, Injectable, Param } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { adapters, startApp, type TestApp } from '../fixtures/app.js';

setFlagsFromString('--allow-natives-syntax');
// oxlint-disable-next-line typescript/no-implied-eval -- the only way to ask V8
const hasFastProperties = new Function('object', 'return %HasFastProperties(object)') as (object: object) => boolean;

@Injectable()
class UsersService {
  find(id: string): { id: string } {
    return { id };
  }
}

@Controller('users')
class UsersController {
  constructor(@Inject(UsersService) private readonly users: UsersService) {}
  @Get() list(): object[] {
    return [this.users.find('1')];
  }
  @Get(':id') async find(@Param('id') id: string): Promise<object> {
    return this.users.find(id);
  }
}

describe.each(adapters)('on %s', (adapter) => {
  let test: TestApp;
  afterEach(() => test.close());

  // An object that has lost a property is a table from then on, and each `this.` of each request is looked up in it.
  it('booting leaves the adapter and the controllers with hidden classes and methods of their own classes', async () => {
    test = await startApp(adapter, { metadata: { controllers: [UsersController], providers: [UsersService] } });
    expect(await (await fetch(`${test.url}/users/7`)).json()).toEqual({ id: '7' });
    const controller = test.app.get(UsersController);
    expect(hasFastProperties(controller)).toBe(true);
    expect(hasFastProperties(test.app.getHttpAdapter())).toBe(true);
    expect(controller.find).toBe(UsersController.prototype.find);
    expect(controller.list).toBe(UsersController.prototype.list);
    expect(Object.keys(controller)).toEqual(['users']);
  });
});
