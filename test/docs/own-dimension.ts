import { createLimiter, type Dimension, dimensions } from 'diana-limiter'

/** One segment of the path: `segment:2` is `acme` in /tenants/acme/orders. */
export const segment: Dimension = {
  name: 'segment',
  argument: 'required',
  read(call, argument) {
    const found = call.path.split('/')[Number(argument)]
    // `acme;x=1` is acme to many servers, so it is no other tenant
    return found?.split(';')[0]
  },
}

const limiter = await createLimiter({
  dimensions: [...dimensions, segment],
  identify: { tenant: ['header:x-tenant', 'segment:2'] },
  rules: [{ id: 'per-tenant', match: { path: '/tenants/**' }, by: 'tenant', limit: '2/s' }],
})
for (const path of ['/tenants/acme/orders', '/tenants/acme;x=1/bills', '/tenants/acme', '/tenants/zen']) {
  const verdict = await limiter.check({ method: 'GET', path })
  console.log(path, verdict.allowed) // true, true, false, true
}
await limiter.close()
