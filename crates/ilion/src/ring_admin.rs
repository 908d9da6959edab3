//! [`MemberRing`]: the ring of this node's cluster, for the administration.

use std::sync::{Arc, Weak};

use ilion_cluster::{ClusterState, Node, TransitionKind};
use ilion_member::{Member, RingChange, RingError};
use ilion_server::admin::{
    AdminError, CopyingReport, RingAdmin, RingChangeReport, RingOrder, RingOrderKind, RingReport, RingStarted,
};
use uuid::Uuid;

/// Reports and changes the ring of this node's cluster, for the administration.
pub struct MemberRing(pub Weak<Member>);

impl MemberRing {
    fn member(&self) -> Result<Arc<Member>, AdminError> {
        let member = self.0.upgrade();
        member.ok_or_else(|| AdminError::Failed("the node stops".to_owned()))
    }
}

impl RingAdmin for MemberRing {
    fn report(&self) -> RingReport {
        let Ok(member) = self.member() else {
            return RingReport::default();
        };
        let ring = member.ring();
        RingReport {
            change: ring
                .current()
                .zip(member.state())
                .map(|(change, state)| told(&change, &state)),
            has_left: ring.has_left(),
        }
    }

    fn change(&self, order: &RingOrder) -> Result<RingStarted, AdminError> {
        let ring = self.member()?.ring();
        let number = match order.kind {
            RingOrderKind::Leave => ring.leave(order.force).map(Some),
            RingOrderKind::Remove => {
                let text = order.host.as_deref().unwrap_or_default();
                let host: Uuid = text
                    .parse()
                    .map_err(|_| AdminError::Refused(format!("'{text}' is no host id")))?;
                ring.remove(host).map(Some)
            }
            RingOrderKind::Rebalance => ring.rebalance(),
            RingOrderKind::Cancel => ring.cancel().map(|()| None),
        };
        let number = number.map_err(|error| match error {
            RingError::Refused(reason) => AdminError::Refused(reason),
            unknown @ RingError::Unknown(_) => AdminError::Failed(unknown.to_string()),
        })?;
        Ok(RingStarted {
            number: number.filter(|number| *number > 0),
        })
    }

    fn clean(&self) -> Result<(), AdminError> {
        self.member()?.ring().clean().map_err(AdminError::Failed)
    }
}

fn told(change: &RingChange, state: &ClusterState) -> RingChangeReport {
    let address = |node: &Node| {
        let member = state.members.get(node);
        member.map_or_else(String::new, |member| member.endpoint.ip.to_string())
    };
    let what = match &change.kind {
        TransitionKind::Join { node, replaces: None } => format!("{} joins", address(node)),
        TransitionKind::Join {
            node,
            replaces: Some(lost),
        } => format!("{} joins in the place of {}", address(node), address(lost)),
        TransitionKind::Leave { node } => format!("{} leaves", address(node)),
        TransitionKind::Move => "slices are spread evenly".to_owned(),
        TransitionKind::Replication { keyspace, .. } => format!("keyspace {keyspace} gets other replicas"),
    };
    let copying = change.copying.iter().map(|(node, is_ready)| CopyingReport {
        host_id: state
            .members
            .get(node)
            .map_or_else(String::new, |member| member.host.to_string()),
        address: address(node),
        is_ready: *is_ready,
    });
    RingChangeReport {
        number: change.number,
        what,
        slices: change.slices,
        copying: copying.collect(),
    }
}
