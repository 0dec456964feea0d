/** How long a reservation waits to be settled. */
export const HOLD_MS = 3000
export const LIMIT = 100

const rule = { id: 'tokens', by: 'account', algorithm: 'fixed-window', align: 'first-call' }

export const rules = [{ ...rule, limit: `${LIMIT}/m`, cost: { hold: `${HOLD_MS}ms` } }]

/** The same counts by so large a limit that they show a debt, too. */
export const wideRules = [{ ...rule, limit: '1000000/m' }]
