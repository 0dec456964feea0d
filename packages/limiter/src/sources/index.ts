import { apollo } from './apollo.ts'
import { consul } from './consul.ts'
import { etcd } from './etcd.ts'
import { file } from './file.ts'
import { http } from './http.ts'
import { nacos } from './nacos.ts'
import { redis } from './redis.ts'
import type { SourceKind } from './source.ts'

/** The sources that a rule file may name under `remote:`. */
export const sources: readonly SourceKind[] = [file, http, redis, etcd, nacos, consul, apollo]
