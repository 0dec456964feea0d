import type { Timeline } from './timeline.ts'
import { bucketTimelines } from './timelines/buckets.ts'
import { faultTimelines } from './timelines/faults.ts'
import { gcraTimelines } from './timelines/gcra.ts'
import { guavaTimelines } from './timelines/guava.ts'
import { nginxTimelines } from './timelines/nginx.ts'
import { windowTimelines } from './timelines/windows.ts'

/** Every table of moments; every store gives the same answers. */
export const timelines: readonly Timeline[] = [
  ...nginxTimelines,
  ...guavaTimelines,
  ...gcraTimelines,
  ...windowTimelines,
  ...bucketTimelines,
  ...faultTimelines,
]
