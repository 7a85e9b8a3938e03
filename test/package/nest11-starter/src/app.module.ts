import { Module } from '@nestjs/common';
import { PerfModule } from 'nestjs-perf';
import { AppController } from './app.controller';
import { AppService } from './app.service';

@Module({
  imports: [PerfModule.forRoot()],
  controllers: [AppController],
  providers: [AppService],
})
export class AppModule {}
