import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createAddressReader, readForwarded } from './ip-address.ts'

describe('an item of Forwarded', () => {
  it.each([
    ['for=192.0.2.60;proto=http;by=203.0.113.43', '192.0.2.60'],
    ['For="[2001:db8:cafe::17]:4711"', '[2001:db8:cafe::17]:4711'],
    [' FOR=192.0.2.43 ; host=example.com', '192.0.2.43'],
    ['proto=https;for="192.0.2.43:80"', '192.0.2.43:80'],
    ['for=192.0.2.43:80', '192.0.2.43:80'],
    ['for=unknown', 'unknown'],
    ['for=_hidden', '_hidden'],
    ['for=""', ''],
    ['proto=http', ''],
    ['', ''],
    ['192.0.2.60', ''],
    ['for=192.0.2.60;', ''],
    ['for=192.0.2.60;;proto=http', ''],
    ['for=192.0.2.60;for=192.0.2.61', ''],
    ['for="192.0.2.60', ''],
    ['for=192.0.2.60"', ''],
    ['for=192.0.2.60;host="a', ''],
    ['for="192.0.2\\.60"', ''],
    ['for = 192.0.2.60', ''],
    [`for=192.0.2.60;host="${'a'.repeat(2000)}"`, ''],
  ])('%s names %j', (item, address) => {
    expect(readForwarded(item)).toBe(address)
  })
})

describe('the caller by Forwarded', () => {
  const hops = (header: string | string[] | undefined, count = 1) => {
    return createAddressReader(count, 'forwarded')('10.0.0.1', header)
  }
  const past = (header: string | string[] | undefined) => {
    return createAddressReader(['10.0.0.0/8', 'fd00::/8'], 'forwarded')('10.0.0.1', header)
  }

  it.each([
    ['for=198.51.100.1', '198.51.100.1'],
    ['for=6.6.6.6, for=198.51.100.1;proto=http', '198.51.100.1'],
    [['for=6.6.6.6', 'for="[2001:DB8::1]:80"'], '2001:db8::1'],
    ['for="::ffff:198.51.100.1"', '198.51.100.1'],
    [undefined, '10.0.0.1'],
    ['for=unknown', '10.0.0.1'],
    ['for=_x, for=_y', '10.0.0.1'],
    ['198.51.100.1', '10.0.0.1'],
    ['for=6.6.6.6, ', '10.0.0.1'],
  ])('%j is %s, one hop away', (header, address) => {
    expect(hops(header)).toBe(address)
  })

  it('an unclosed quote of a caller does not hide what the proxy appends to Forwarded', () => {
    expect(hops('for="6.6.6.6, for=198.51.100.1')).toBe('198.51.100.1')
    expect(past('for="6.6.6.6;host=", for=198.51.100.1, for=10.0.0.2')).toBe('198.51.100.1')
  })

  it.each([
    'for=198.51.100.1;host="evil,for=6.6.6.6"',
    'for=198.51.100.1;host="evil,for=6.6.6.6;x=y"',
    'for=198.51.100.1;host="evil,for=6.6.6.6";proto=http',
    'for=198.51.100.1;host="evil,for=6.6.6.6;x=";proto=http',
    'for=198.51.100.1;host="evil,for=6.6.6.6;x=\\"\\""',
  ])('a quoted host in Forwarded is not an address: %s', header => {
    expect(hops(header)).toBe('10.0.0.1')
    expect(past(header)).toBe('10.0.0.1')
  })

  it('trusted networks in Forwarded are skipped from the right', () => {
    expect(past('for=6.6.6.6, for=198.51.100.1, for="[fd00::1]", for=10.9.9.9')).toBe('198.51.100.1')
    expect(past('for=10.0.0.3, for=10.0.0.2')).toBe('10.0.0.3')
    expect(past('for=198.51.100.1, for=unknown, for=10.0.0.2')).toBe('10.0.0.2')
  })

  it('any Forwarded header gives a valid address or none', () => {
    const piece = fc.constantFrom(
      'for=',
      'For="',
      '"',
      ',',
      ';',
      '1.2.3.4',
      '[::1]',
      ':80',
      'unknown',
      ' ',
      '\\',
      '=',
      'x',
    )
    const header = fc.array(piece, { maxLength: 40 }).map(pieces => pieces.join(''))
    fc.assert(
      fc.property(header, header => {
        expect(['10.0.0.1', '1.2.3.4', '::1']).toContain(hops(header))
        expect(['10.0.0.1', '1.2.3.4', '::1']).toContain(past(header))
      }),
    )
    expect(past('for=10.0.0.2,'.repeat(50_000))).toBe('10.0.0.1')
  })
})
