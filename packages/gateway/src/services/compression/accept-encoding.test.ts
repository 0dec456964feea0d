import { expect, test } from 'vitest'
import { chooseEncoding } from './accept-encoding.ts'

test.each([
  [undefined, undefined],
  ['', undefined],
  ['gzip', 'gzip'],
  ['GZIP', 'gzip'],
  ['x-gzip', 'gzip'],
  ['br', 'br'],
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip;q=1.0, br;q=0.9', 'gzip'],
  ['gzip;q=0', undefined],
  ['gzip;q=0.000', undefined],
  ['gzip; Q=0', undefined],
  ['gzip;q=0, br', 'br'],
  ['gzip;q=0, *', 'br'],
  ['br;q=0, *', 'gzip'],
  ['*', 'br'],
  ['*;q=0', undefined],
  ['*;q=0, gzip', 'gzip'],
  ['identity', undefined],
  ['identity;q=0', undefined],
  ['identity;q=0, *', 'br'],
  ['identity;q=0, gzip;q=0.1', 'gzip'],
  ['identity, gzip;q=0.5', undefined],
  ['identity;q=0.5, gzip', 'gzip'],
  ['identity, gzip', 'gzip'],
  ['gzip;q=0.001', 'gzip'],
  ['gzip ; q=0.5 , br ; q=0.4', 'gzip'],
  ['gzip;q=2', undefined],
  ['gzip;q=-1', undefined],
  ['gzip;q=', undefined],
  ['gzip;q=abc, br;q=0.1', 'br'],
  ['gzip;level=9', 'gzip'],
  ['deflate, compress', undefined],
  [',,gzip,,', 'gzip'],
  ['gzipped', undefined],
] as const)('a caller that sends Accept-Encoding "%s" gets %s', (accepted, expected) => {
  expect(chooseEncoding(accepted, ['br', 'gzip'])).toBe(expected)
})

test('among encodings with equal weights, the first offered one is chosen', () => {
  expect(chooseEncoding('gzip, br', ['gzip', 'br'])).toBe('gzip')
  expect(chooseEncoding('gzip, br', ['br', 'gzip'])).toBe('br')
})
