import { expect, test } from 'vitest'
import { shortName } from './short-name.ts'

test.each([
  ['/etc/diana/diana.yaml', 'diana.yaml'],
  ['file /etc/diana/diana.yaml', 'diana.yaml'],
  ['file C:\\diana\\diana.yaml', 'diana.yaml'],
  ['diana.yaml', 'diana.yaml'],
  ['etcd http://127.0.0.1:2379 /diana/rules', 'etcd http://127.0.0.1:2379 /diana/rules'],
])('the short name of %s is %s', (name, short) => expect(shortName(name)).toBe(short))
