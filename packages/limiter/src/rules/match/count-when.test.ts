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
    [{ status: 200, by: 'gateway' }, 'success', false],
    [{ status: 204, by: 'gateway' }, 'failed', false],
    [{ status: 413, by: 'gateway' }, 'failed', true],
    [{ status: 502, by: 'gateway' }, 'success', false],
    [{ status: 502, by: 'gateway' }, '502', true],
    [{ status: 200, by: 'service' }, 'success', true],
    [{ by: 'gateway' }, 'success', true],
  ] as const)('%j by countWhen %s counts: %s', (outcome, text, counts) => {
    expect(compileCountWhen([parseStatuses(text)!])(outcome)).toBe(counts)
  })

  it.each([
    [{ status: 200, by: 'gateway' }, 'POST', false],
    [{ status: 401, by: 'gateway' }, 'POST', false],
    [{ status: 200 }, 'OPTIONS', false],
    [{ status: 200 }, 'TRACE', false],
    [{ status: 200 }, 'HEAD', false],
    [{ status: 200 }, 'GET', true],
    [{ status: 200, by: 'service' }, 'DELETE', true],
  ] as const)('%j of %s clears the count: %s', (outcome, method, clears) => {
    expect(compileResetWhen([[200, 499]], () => false)(outcome, { method, path: '/' })).toBe(clears)
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
    expect(compileResetWhen([[200, 399]], () => false)(outcome, { method: 'POST', path: '/' })).toBe(clears)
  })
})
