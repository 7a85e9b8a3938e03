import { Controller, Get, Param } from '@nestjs/common';

/** A route as it slips into every API: fine with ten rows, a blocked event loop with the customer who has many. */
@Controller('reports')
export class ReportsController {
  @Get(':id')
  report(@Param('id') id: string) {
    return { id, checksum: renderRows(id) };
  }
}

function renderRows(id: string): number {
  const endsAt = performance.now() + 120;
  let checksum = id.length;
  while (performance.now() < endsAt) checksum = (checksum * 31 + 7) % 65_521;
  return checksum;
}
