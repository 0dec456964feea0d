export type { CatchUp, LevelCatchUp } from './catch-up.ts'
export type { Charge } from './charge.ts'
export { catchUpState, decideCharges, idleAt, refundCharge, resetState, stateSize } from './decide-charges.ts'
export type { LeaseAnswer, LeaseRequest, Use } from './leases/lease-request.ts'
export { type LeaseTerms, leaseTermsOf } from './leases/lease-terms.ts'
export { type Held, type LevelState, Reservations } from './leases/reservations.ts'
export type { Membership, MembershipRegistry, SignOfLife } from './membership/registry.ts'
export type { ShareClaim, ShareGrant } from './membership/shares.ts'
export type {
  Answered,
  AnswerListener,
  FleetCharge,
  FleetCounter,
  FleetRefund,
  FleetRule,
  SharedStore,
  StoreWatcher,
} from './store.ts'
