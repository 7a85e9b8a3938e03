import { Controller, Get, Param } from '@nestjs/common';
import { PerfService } from '../../src/index.js';
import { describe, expect, it } from 'vitest';
import { adapters, startApp } from '../fixtures/app.js';

@Controller('users')
class UsersController {
  @Get(':id')
  findOne(@Param('id') id: string) {
    return { id };
  }
  @Get()
  list() {
    return [1];
  }
}

describe.each(adapters)('%s', (adapter) => {
  it('records', async () => {
    const { url, requests, close, app } = await startApp(adapter, { metadata: { controllers: [UsersController] } });
    expect(await (await fetch(`${url}/users/7`)).json()).toEqual({ id: '7' });
    await fetch(`${url}/users`);
    await fetch(`${url}/nope`);
    const records = await requests();
    console.log(records, app.get(PerfService).snapshot().routes);
    await close();
    expect(records.map((r) => [r.method, r.route, r.handler, r.status, r.outcome])).toEqual([
      ['GET', '/users/:id', 'UsersController.findOne', 200, 'completed'],
      ['GET', '/users', 'UsersController.list', 200, 'completed'],
      ['GET', '', null, 404, 'completed'],
    ]);
  });
});
