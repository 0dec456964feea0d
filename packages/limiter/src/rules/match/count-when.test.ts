import { describe, expect, it } from 'vitest'
import { compileCountWhen, compileResetWhen, parseStatuses } from './count-when.ts'

describe('the responses that count', () => {
  it.each([
    ['failed', [400, 999]],
    ['401', [401, 401]],
    ['5xx', [500, 599]],
    ['400-404', [400, 404]],
    ['404-400', undefined],
    ['99', undefined],
    ['1000', undefined],
    ['0xx', undefined],
    ['success', [200, 399]],
    ['failure', [400, 999]],
    ['successful', undefined],
    ['', undefined],
    ['401 ', undefined],
  ])('%j are %j', (text, range) => {
    expect(parseStatuses(text)).toEqual(range)
  })

  it.each([
    [{ status: 200 }, false],
    [{ status: 302 }, false],
    [{ status: 399 }, false],
    [{ status: 400 }, true],
    [{ status: 503 }, true],
    // a caller that disconnects gets no charge back
    [{}, true],
    [{ status: undefined }, true],
    [{ status: 0 }, true],
    [{ status: Number.NaN }, true],
    [{ failed: true }, true],
    [{ failed: false }, false],
    [{ failed: true, status: 200 }, true],
    [{ failed: false, status: 500 }, false],
  ])('failed: %j counts: %s', (outcome, counts) => {
    expect(compileCountWhen([[400, 999]])(outcome)).toBe(counts)
  })

  it.each([
    [{ status: 200 }, true],
    [{ status: 302 }, true],
    [{ status: 401 }, false],
    // a caller that disconnects clears nothing
    [{}, false],
    [{ status: 0 }, false],
    [{ failed: false, status: 500 }, true],
    [{ failed: true, status: 200 }, false],
  ])('success: %j clears the count: %s', (outcome, clears) => {
    expect(compileResetWhen([[200, 399]])(outcome)).toBe(clears)
  })
})
