export { FilterService } from './filters/service.ts'
export { type FilterSuiteOptions, type FilterTest, filterSuite, type ServerUnderTest } from './filters/suite.ts'
export { type SourceSuiteOptions, type SourceTest, type SourceUnderTest, sourceSuite } from './sources/suite.ts'
export type { TimelineRule } from './timeline.ts'
export {
  type Outcome,
  type Row,
  runTimeline,
  type Timeline,
  type TimelineAnswer,
  type TimelineDecider,
} from './timeline.ts'
export { timelines } from './timelines.ts'
