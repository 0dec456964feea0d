import { describe, expect, test } from 'vitest'
import { formatTraceparent, isInShare, parseTraceparent } from './ids.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const parentId = 'b7ad6b7169203331'

describe('traceparent', () => {
  test('traceparent is read and written as W3C Trace Context says', () => {
    const sampled = { traceId, parentId, isSampled: true }
    expect(parseTraceparent(`00-${traceId}-${parentId}-01`)).toEqual(sampled)
    expect(parseTraceparent(`00-${traceId}-${parentId}-00`)).toEqual({ ...sampled, isSampled: false })
    // further flags, and a later version with more fields
    expect(parseTraceparent(`00-${traceId}-${parentId}-03`)).toEqual(sampled)
    expect(parseTraceparent(`cc-${traceId}-${parentId}-01-what-comes`)).toEqual(sampled)
    expect(formatTraceparent(sampled)).toBe(`00-${traceId}-${parentId}-01`)
  })

  test.each([
    undefined,
    '',
    '00',
    `ff-${traceId}-${parentId}-01`,
    `00-${traceId}-${parentId}-01-more`,
    `cc-${traceId}-${parentId}-01.more`,
    `00-${traceId.toUpperCase()}-${parentId}-01`,
    `00-${'0'.repeat(32)}-${parentId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId}-${parentId}-1`,
    `00-${traceId}-${parentId}-0g`,
    `00-${traceId}0-${parentId}-01`,
    ` 00-${traceId}-${parentId}-01`,
    `00-${traceId}-${parentId}-01, 00-${traceId}-${parentId}-01`,
  ])('%j is ignored', header => {
    expect(parseTraceparent(header)).toBeUndefined()
  })

  test('the share of recorded traces is chosen by the trace id alone', () => {
    const id = (low: string) => '0'.repeat(32 - low.length) + low
    expect(isInShare(id('fffffffffffff'), 1)).toBe(true)
    expect(isInShare(id('0'), 0)).toBe(false)
    expect(isInShare(id('7ffffffffffff'), 0.5)).toBe(true)
    expect(isInShare(id('8000000000000'), 0.5)).toBe(false)
  })
})
