"""What the MoE path must compute: routing, weight formats, experts, and the last step that scales and adds."""
