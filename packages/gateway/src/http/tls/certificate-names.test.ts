import { expect, it } from 'vitest'
import { CertificateNames } from './certificate-names.ts'

const names = new CertificateNames<string>()
names.add(['shop.test', '*.shop.test'], 'shop')
names.add(['deep.shop.test', 'shop.test', 'localhost'], 'deep')
names.add(['*.a.shop.test'], 'wild')

it.each([
  ['shop.test', 'shop'],
  ['SHOP.test', 'shop'],
  ['shop.test.', 'shop'],
  ['deep.shop.test', 'deep'],
  ['other.shop.test', 'shop'],
  ['x.a.shop.test', 'wild'],
  ['x.other.shop.test', undefined],
  ['a.shop.test', 'shop'],
  ['localhost', 'deep'],
  ['test', undefined],
  ['notshop.test', undefined],
  ['.shop.test', undefined],
  ['*.shop.test', 'shop'],
  ['', undefined],
  ['__proto__', undefined],
])('a caller who asks for %j gets the certificate %j', (asked, found) => {
  expect(names.find(asked)).toBe(found)
})
