import { Module } from '@nestjs/common';
import { Pages, Reports } from './reports';

@Module({ providers: [Pages, Reports], exports: [Reports] })
export class OffloadModule {}
