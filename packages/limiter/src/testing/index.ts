export { FilterService } from './filter-service.ts'
export { type FilterSuiteOptions, type FilterTest, filterSuite, type ServerUnderTest } from './filter-suite.ts'
export { type SourceSuiteOptions, type SourceTest, type SourceUnderTest, sourceSuite } from './source-suite.ts'
export type { TimelineRule } from './timeline.ts'
export {
  type Outcome,
  type Row,
  runTimeline,
  type Timeline,
  type TimelineAnswer,
  type TimelineJudge,
} from './timeline.ts'
export { timelines } from './timelines.ts'
